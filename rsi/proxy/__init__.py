"""The Mixture-of-LoRA serving proxy."""
