"""Training: one script per recipe kind on a shared loop."""

import judging  # noqa: F401  Before torch: it sets how torch's threads wait.
