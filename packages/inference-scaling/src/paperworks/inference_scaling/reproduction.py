"""claims."""

from paperworks.shared.claims import Claims

claims = Claims("inference-scaling")
