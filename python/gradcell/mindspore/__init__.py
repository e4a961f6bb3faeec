"""Programs written for MindSpore: `mindspore` as a name for gradcell, and what its names mean here."""
