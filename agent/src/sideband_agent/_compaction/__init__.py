"""Making a long conversation shorter: when, where it is cut, and what is listed with the summary."""
