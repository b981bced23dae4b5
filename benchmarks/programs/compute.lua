-- SPDX-License-Identifier: MIT
-- compute.lua ROUNDS: a mix of what Lua programs do: calls, tables, strings, sorting, closures,
-- coroutines and caught errors. Run by `benchmarks/run programs`.
local rounds = tonumber(arg[1])

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function primes(limit)
  local composite, count = {}, 0
  for i = 2, limit do
    if not composite[i] then
      count = count + 1
      for j = i * i, limit, i do composite[j] = true end
    end
  end
  return count
end

local function words(count)
  local seen = {}
  for i = 1, count do
    local word = string.format("%x-%d", i * 7919 % 1000, i % 10)
    seen[word] = (seen[word] or 0) + 1
  end
  local list = {}
  for word, times in pairs(seen) do list[#list + 1] = word .. ":" .. times end
  table.sort(list)
  return table.concat(list, " ")
end

local function replaced(text)
  local count = 0
  for key in text:gmatch("(%x+)%-%d:") do count = count + #key end
  return count + #text:gsub("%d", {["1"] = "one", ["2"] = "two"}):upper()
end

local Account = {}
Account.__index = Account
function Account.new(balance) return setmetatable({balance = balance}, Account) end
function Account:deposit(amount) self.balance = self.balance + amount end

local function accounts(count)
  local account = Account.new(0)
  for i = 1, count do
    account:deposit(i)
    if i % 100 == 0 then
      local ok = pcall(function() error("caught") end)
      account:deposit(ok and 1 or -1)
    end
  end
  return account.balance
end

local function producer(count)
  return coroutine.wrap(function() for i = 1, count do coroutine.yield(i) end end)
end

local sum = 0
for _ = 1, rounds do
  sum = sum + fib(20) + primes(20000)
  sum = sum + replaced(words(5000)) + accounts(20000)
  for i in producer(5000) do sum = sum + i end
end
print(sum)
