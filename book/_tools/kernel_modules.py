"""Import once what the kernels of most pages need, in the process that they are forked from."""

import os

os.environ["JPY_PARENT_PID"] = str(os.getpid())  # a kernel ends when this process does
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as in any kernel, but set before the imports

import gc
from importlib import import_module

for module in (
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "myst_nb",
    "attnlib.numpy",
    "attnlib.plotting",
    "attnlib.torch",
    "torch._dynamo",  # every optimiser imports it, which takes two seconds
    "tokenizers",
):
    import_module(module)
gc.freeze()  # garbage collection in a kernel would otherwise copy all these modules
