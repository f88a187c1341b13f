"""The sections of the report: what each experiment found, as blocks that a page, a terminal, Markdown and LaTeX show alike."""
