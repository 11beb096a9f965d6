"""Show it: a running topology, a finished run, a plan or advice, live in a browser.

The server reads what runs write and never speaks to them; what it is asked to work out, a process
of its own does. From outside in:

    server     binds, prints the address, ends            safety   who may ask for what
    app        routes                                     openapi  their description
    runs       the folders, followed                      events   what is new, to every viewer
    columns    figures over time                          jobs     processes that can be stopped
    picture    a plan as the reports draw it              work     what such a process does
    saved      the page as one file                       metrics  for Prometheus
"""
