"""Status of clusters, pools and nodes."""
