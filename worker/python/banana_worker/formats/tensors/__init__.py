"""Reads and writes the tensors of the Open Inference Protocol; `formats/open_inference.py` is the format itself."""
