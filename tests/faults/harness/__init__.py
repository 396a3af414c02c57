"""The fault harness: it runs every command on damaged files, odd options, failing disks and dying processes.

Read `commands` first (what there is to run), then `world` (what it is run on), `parent` (how), `judging` (what
must come out); `damages`, `options`, `injection` and `races` are what is done to it, `counts` what is told of it.
"""
