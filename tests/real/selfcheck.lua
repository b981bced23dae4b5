-- SPDX-License-Identifier: MIT
-- selfcheck.lua: runs through the whole of Lua; its output must not depend on who is watching.
local sum = 0
local function tree(depth)
  if depth == 0 then return {} end
  return {left = tree(depth - 1), right = tree(depth - 1)}
end
local function count(node)
  if not node.left then return 1 end
  return 1 + count(node.left) + count(node.right)
end
assert(count(tree(12)) == 8191)

-- errors are longjmps: caught at many depths
local function fail_at(depth)
  if depth == 0 then error({code = depth}) end
  return fail_at(depth - 1) + 1
end
for depth = 0, 150 do
  local ok, problem = pcall(fail_at, depth)
  assert(not ok and problem.code == 0)
  ok = xpcall(fail_at, function(e) return debug.traceback(e.code) end, depth)
  assert(not ok)
end
assert(not pcall(function() local function f() return 1 + f() end return f() end))

-- coroutines, with errors inside and out
local function generator(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
end
for i in generator(1000) do sum = sum + i end
assert(sum == 500500)
for i = 1, 100 do
  local co = coroutine.create(function() coroutine.yield(i) error("inside") end)
  assert(select(2, coroutine.resume(co)) == i)
  assert(not coroutine.resume(co))
end

-- strings, patterns, sorting by a comparator, closures, metatables, goto, integers
local words = {}
for word in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = word end
table.sort(words, function(a, b) return a > b end)
print(table.concat(words, " "))
print(("x"):rep(20000):gsub("x", "yz"):len(), string.format("%q %5.2f %x", "a\nb", math.pi, 255))
local numbers = {}
for i = 1, 5000 do numbers[i] = (i * 7919) % 5003 end
table.sort(numbers)
for i = 2, #numbers do assert(numbers[i - 1] <= numbers[i]) end
local vector = setmetatable({}, {__index = function(_, k) return k * 2 end, __gc = function() end,
                                 __close = function() sum = sum + 1 end})
do local v <close> = vector; assert(v[21] == 42) end
local chunks = {}
for i = 1, 300 do chunks[i] = load("return function(a) return a + " .. i .. " end")() end
for i = 1, 300 do assert(chunks[i](i) == 2 * i) end
collectgarbage("generational")
for i = 1, 20000 do local t = {i, tostring(i), {}} sum = sum + #t end
collectgarbage("incremental")
for i = 1, 20000 do local t = {i, i .. "x"} sum = sum + #t end
collectgarbage()
local file = assert(io.tmpfile())
for i = 1, 1000 do file:write(i, "\n") end
file:seek("set")
local lines = 0
for line in file:lines() do lines = lines + 1 end
file:close()
print(lines, sum, utf8.char(8364, 960), 7 // 2, 7 % -3, 1 << 62, math.maxinteger)
io.stderr:write("self-check passed\n")
os.exit(3, true)
