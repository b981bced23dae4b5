# SPDX-License-Identifier: MIT
"""work.py: work for a python whose functions are all followed: JSON, exceptions, patterns, large numbers."""
import json,re,hashlib,collections
d=collections.OrderedDict((str(i),[j*i for j in range(20)]) for i in range(500))
t=json.dumps(d); e=json.loads(t); assert e==d
class A(Exception): pass
def f(n):
    if n==0: raise A("x")
    return f(n-1)
for i in range(50):
    try: f(i)
    except A as x: t+=str(x)
print(hashlib.sha256(re.sub(r"(\d+)7", r"<\1>", t).encode()).hexdigest(), sorted(set(len(x) for x in t.split(",")))[:5], 3**500 % 1009, "%.6f" % sum(i**0.5 for i in range(1000)))
