"""The console in a real browser: what people do, what strangers try, and what its pages weigh.

`world` starts the real server, with the models of a script (`program`) and files that strangers wrote; `browser` starts
a real Chromium and watches everything that its pages do. The modules `journeys_…` do what a person does and assert what
they see. `hostile` has texts that would run as code on a careless page, `fields` and `fields_typed` put them wherever
the world or a person fills a page, and `injection` says what came of it. The modules `attacks_…` are pages of strangers
against the browser of somebody who is signed in. `pages` lists all pages, for the check of accessibility and for the
pictures of the documentation.
"""
