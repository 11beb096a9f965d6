#!/bin/sh
# Stands in for a job that never ends.
sleep 98765
