"""What mkdocs.yml hooks into the building of the site."""

import re

# A link that leads out of the guides, into the source, has no page in the site:
# it becomes the name of the file.
OUT = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown, **_):
    return OUT.sub(r"\1 (`\2` in the source)", markdown)
