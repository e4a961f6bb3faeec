"""Summaries of training as TensorBoard's event files."""

from gradcell.train.summary.summary_record import SummaryRecord

__all__ = ["SummaryRecord"]
__dir__ = sorted(__all__).copy
