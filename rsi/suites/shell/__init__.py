"""The built-in suite: small terminal jobs, generated from a seed, in Harbor's layout."""
