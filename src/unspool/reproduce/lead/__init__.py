"""StableGNN under upper levels with views: searched on validation nodes, frozen, then evaluated; the table that came of it."""
