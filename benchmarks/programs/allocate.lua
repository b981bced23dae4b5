-- SPDX-License-Identifier: MIT
-- allocate.lua ROUNDS: hardly anything but allocations: trees of small tables, short strings and
-- closures, most of them soon garbage. Run by `benchmarks/run programs`.
local rounds = tonumber(arg[1])

local function tree(depth)
  if depth == 0 then return {} end
  return {tree(depth - 1), tree(depth - 1)}
end

local function nodes(node)
  return node[1] and 1 + nodes(node[1]) + nodes(node[2]) or 1
end

local kept, sum = {}, 0
for round = 1, rounds do
  sum = sum + nodes(tree(12))
  for i = 1, 10000 do
    kept[i % 1000 + 1] = {name = "block " .. i, next = function() return i + round end}
  end
  for i = 1, 1000 do sum = sum + kept[i].next() + #kept[i].name end
end
print(sum)
