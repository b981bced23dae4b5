# SPDX-License-Identifier: MIT
"""Random WHERE clauses over the columns of `allocations` that are pushed down."""

COLUMNS = ("id", "thread", "address", "size", "context", "born", "freed", "lifetime", "freed_by")
ENDS = ("freed", "lifetime", "freed_by")


def literal(dice, values, with_text):
    """Mostly a value that there is."""
    value = dice.choice(values)
    return dice.choice((str(value),) * 6 + (
        "%d.5" % value, "%d.0" % value, "-1", "-0.5", "NULL", "0", str(2 ** 62), "1e300",
        "9223372036854775807", "-9223372036854775808") + (
            ("'%d'" % value, "'x'", "x'00'", "' %d'" % value) if with_text else ()))


def constraint(dice, values, with_text):
    """With {} where the column stands."""
    how = dice.randrange(8)
    one = lambda: literal(dice, values, with_text)
    if how == 0:
        return "{} IN (%s)" % ", ".join(one() for _ in range(dice.randint(1, 4)))
    if how == 1:
        return "{} BETWEEN %s AND %s" % (one(), one())
    if how == 2:
        return "%s %s {}" % (one(), dice.choice(("<", ">", "=", "<=", ">=")))
    return "{} %s %s" % (dice.choice(("<", "<=", "=", ">", ">=", "<>", "IS")), one())


def questions(column, dice, rounds, with_text=False):
    """(condition, the same with nothing pushed down). column(sql): the values of a column. Text only
    where the second one is not used: unary plus takes a column's affinity away, too, so that '5' is
    no 5 any more."""
    values = {name: column("SELECT DISTINCT %s FROM allocations WHERE %s IS NOT NULL ORDER BY 1 "
                           "LIMIT 500" % (name, name)) for name in COLUMNS}
    for _ in range(rounds):
        names = dice.sample(COLUMNS, dice.randint(1, 3))
        if dice.random() < 0.5:
            names = [name for name in names if name not in ENDS] or ["born"]
        parts = [(name, constraint(dice, values[name], with_text)) for name in names]
        joint = dice.choice((" AND ", " AND ", " OR "))
        yield (joint.join(part.format(name) for name, part in parts),
               joint.join(part.format("+" + name) for name, part in parts))
