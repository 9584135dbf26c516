"""What every call passes before its route: connections, access keys, sites, kinds of bodies."""
