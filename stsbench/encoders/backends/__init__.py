"""What else than torch computes a checkpoint's hidden states, faster on a CPU: OpenVINO and ONNX Runtime."""
