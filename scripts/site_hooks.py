"""What mkdocs.yml hooks into the building of the site."""

import re


# A link that leads out of the guides, into the source, has no page in the site:
# it becomes the name of the file.
def on_page_markdown(markdown, page, **_):
    up = "../" * (page.file.src_uri.count("/") + 1)
    out = re.compile(r"\[([^\]]+)\]\(" + re.escape(up) + r"([^)#]+)(?:#[^)]*)?\)")
    return out.sub(r"\1 (`\2` in the source)", markdown)
