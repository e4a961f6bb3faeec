"""Formats of other programs' files, read and written without them: protocol buffers, framed records, what
torch.save writes.
"""
