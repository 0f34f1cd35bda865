"""A fit, from data to a receipt: the contract of models, the driver, the estimator, the report, the control."""
