"""torch under the names of the array API: imported only when a torch tensor arrives."""

from attnlib._extras import explain_missing

with explain_missing("attnlib with torch"):
    import array_api_compat.torch

ARRAY_API = array_api_compat.torch
