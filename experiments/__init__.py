"""Programs that measure this toolkit. Nothing else imports them."""
