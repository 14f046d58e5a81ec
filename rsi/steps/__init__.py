"""One verb each: values and ports in, values out."""
