"""MindRecord: MindSpore's files of rows, read and written without MindSpore."""

from gradcell.mindrecord.reader import FileReader, RecordFile, shards_of
from gradcell.mindrecord.writer import FileWriter, write_rows

SUCCESS, FAILED = "SUCCESS", "FAILED"

__all__ = ["FAILED", "SUCCESS", "FileReader", "FileWriter", "RecordFile", "shards_of", "write_rows"]
__dir__ = sorted(__all__).copy
