"""The ONNX graph of an export, and the session that runs it."""
