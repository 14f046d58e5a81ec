"""What runs on the training machine; the only home of torch."""
