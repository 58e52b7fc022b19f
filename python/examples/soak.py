"""Random transfers under random faults, in virtual time: a nightly check of the network code.

python soak.py [TRANSFERS [SEED]]
"""

import sys

import haulier

report = haulier.soak(*(int(number) for number in sys.argv[1:3]))
print(f"{report.transfers} transfers in {report.virtual_time_s:.0f} s of virtual time: ", end="")
print(f"{report.hangs} hangs, {report.mismatches} mismatches")
for failure in report.failures:
    print(f"{failure.replay}   ({failure.what})")
sys.exit(0 if report.is_ok else 1)
