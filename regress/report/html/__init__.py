"""The HTML report: a folder that opens from a file, without a server and without a network, or one single file.

    folder.py      the folder: whether it is ours, what of it is out of date, and writing it
    feed.py        what is open as an Atom feed
    badge.py       how much that is, as a picture for a README
    profile.py     the page of a profile: one file
    account.py     an explanation in words, for its own page and for those of a report
    explained.py   the page of an explanation: both timelines, the sums, the kernels
    page.py        pages: template, style and scripts in one; and data as scripts, whatever text stands in it
    page.html.j2   the template of index.html; profile.html.j2 and explained.html.j2 those of the single pages
    style.css      how they look; account.css an explanation; implementations.css, profile.css and explained.css what
                   only those have
    dark.css       its colours in the dark, which stand at two places of it
    js/            what it does, a job a file; page.py has the order
    vendor/        uPlot, which draws the charts, with its licence

Nothing here computes: what a page says is in the data (regress/pages.py), and the scripts sort, search, scale and draw.
"""

from __future__ import annotations

from regress.report.html.explained import write_explained
from regress.report.html.folder import Written, write_file, write_folder
from regress.report.html.profile import write_profile

__all__ = ["Written", "write_explained", "write_file", "write_folder", "write_profile"]
