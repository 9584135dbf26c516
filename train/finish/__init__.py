"""From a finished run to a judge: adapter, calibration, report and model card."""
