/** The scripts that read jobs, and that see to all of them. */
import type { BullScripts } from './load-packages.js';
import { script } from './layout.js';

/** id, now, retention: a job; nothing if it is unknown or its time is over. */
const READ = `
local id = ARGV[1]
if not entry(id) or hasPassed(id, ARGV[2], ARGV[3]) then return {} end
return read(id)
`;

/**
 * state or empty, limit, from or empty, now, retention: jobs, the newest first, the order from which the next ones are, and
 * whether this page may have more. Looks at the jobs that BullMQ has in sets of that state, if these are few; else at a
 * thousand of all.
 */
const LIST = `
local state, limit, from = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]) or math.huge
local FEW, PAGE = 2000, 1000
local SETS = { queued = { 'prioritized', 'delayed' }, running = { 'active', 'wait' }, succeeded = { 'completed' } }

local function few()
  local ids = {}
  for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
    for _, set in ipairs(SETS[state] or { 'failed' }) do
      local found = redis.call(state == 'running' and 'LRANGE' or 'ZRANGE', base(queue) .. set, 0, FEW)
      if #ids + #found > FEW then return nil end
      for _, id in ipairs(found) do
        ids[#ids + 1] = { id = id, order = tonumber(redis.call('ZSCORE', P .. 'order', id) or '0') }
      end
    end
  end
  table.sort(ids, function(a, b) return a.order > b.order end)
  return ids
end

local function page()
  local ids, top = {}, from == math.huge and '+inf' or from
  local found = redis.call('ZREVRANGEBYSCORE', P .. 'order', top, '-inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
  for i = 1, #found, 2 do ids[#ids + 1] = { id = found[i], order = tonumber(found[i + 1]) } end
  return ids
end

local function stateOf(id)
  local at = placeOf(id)
  local known = at and redis.call('HMGET', at .. id, 'st', 'can') or {}
  if known[2] and (known[1] == 'failed' or known[1] == 'lost') then return 'cancelled' end
  return known[1] or at and (waits(at, id) and 'queued' or 'running')
end

local ids, found, more = state ~= '' and few(), {}, ''
if not ids then
  ids = page()
  more = #ids == PAGE and tostring(ids[PAGE].order - 1) or ''
end
for _, one in ipairs(ids) do
  if one.order <= from and (state == '' or stateOf(one.id) == state) and not hasPassed(one.id, ARGV[4], ARGV[5]) then
    local job = read(one.id)
    if #job > 0 and #found == limit then return { found, tostring(one.order), '' } end
    if #job > 0 then found[#found + 1] = job end
  end
end
return { found, more, more }
`;

/** worker: ids of the active jobs that it has fetched. */
const FETCHED = `
local found = {}
for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
  for _, id in ipairs(redis.call('LRANGE', base(queue) .. 'active', 0, -1)) do
    if redis.call('HGET', base(queue) .. id, 'pb') == ARGV[1] then found[#found + 1] = id end
  end
end
return found
`;

/**
 * now, ms between two cleans, retention, most expired ones, ms between two searches for jobs without a lock, or empty for none: what
 * a server looks at each second. One of them cleans. Answers the due jobs, the next due time, the jobs without a server and the
 * active ones of each queue; ids that have expired, and when the next one does; the time of Redis.
 */
const LOOK = `
goOnIfFull()
-- A job that is due waits, as BullMQ lets it wait at a fetch: it stays so if the clock is set back.
local function promote(at, now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', at .. 'delayed', '-inf', (now + 1) * 4096 - 1, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', at .. 'delayed', id)
    enqueue(at, id, math.max(1, redis.call('HGET', at .. id, 'priority') or 1))
    redis.call('HSET', at .. id, 'delay', 0)
    tell(at, 'waiting', id, 'prev', 'delayed')
  end
end
-- Lets active jobs whose lock has gone wait where those are that are to be decided: those that had none at the check before too.
local function findStalled(at, now)
  local names = { 'stalled', 'wait', 'active', 'stalled-check', 'meta', 'paused', 'marker', 'events', 'repeat' }
  moveStalledJobsToWait(keysAt(at, names), { math.huge, at, now, ARGV[5] })
end
local now = tonumber(ARGV[1])
local queues = {}
for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
  local at = base(queue)
  promote(at, now)
  local due = redis.call('ZCARD', at .. 'prioritized')
  local later = redis.call('ZRANGE', at .. 'delayed', 0, 0, 'WITHSCORES')
  local active = redis.call('LLEN', at .. 'active')
  if ARGV[5] ~= '' and active > 0 then findStalled(at, ARGV[1]) end
  local stalled = redis.call('LRANGE', at .. 'wait', 0, -1)
  queues[#queues + 1] = { queue, due, later[2] and tostring(later[2] / 4096) or '', stalled, active }
end
local over = redis.call('ZRANGEBYSCORE', P .. 'expires', '-inf', now, 'LIMIT', 0, ARGV[4])
local next = redis.call('ZRANGEBYSCORE', P .. 'expires', '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if redis.call('SET', P .. 'clean', '1', 'NX', 'PX', ARGV[2]) then
  local left = 1000
  for _, one in ipairs(queues) do
    local q, size = base(one[1]), 0
    for _, set in ipairs({ 'completed', 'failed' }) do
      local old = redis.call('ZRANGEBYSCORE', q .. set, '-inf', now - ARGV[3], 'LIMIT', 0, left)
      left = left - #old
      for _, id in ipairs(old) do
        if not isOwed(id) then drop(id) end
      end
      size = size + redis.call('ZCARD', q .. set)
    end
    if size + one[2] + #one[4] + one[5] == 0 and one[3] == '' then
      redis.call('SREM', P .. 'queues', one[1])
      for _, key in ipairs({ 'events', 'meta', 'id', 'pc', 'marker', 'stalled', 'stalled-check' }) do
        redis.call('DEL', q .. key)
      end
    end
  end
  -- Jobs that somebody has removed by a tool of BullMQ: all of them soon if they are many, for they take room.
  local hasFound
  repeat
    hasFound = false
    for _, id in ipairs(redis.call('HRANDFIELD', P .. 'jobs', 10)) do
      if redis.call('EXISTS', placeOf(id) .. id) == 0 then
        drop(id)
        left, hasFound = left - 1, true
      end
    end
  until not hasFound or left <= 0
end
return { queues, over, next[2] or '', redis.call('TIME') }
`;

/** now, until, limit: names of owed webhooks that no server sends; this one does until then. */
const TAKE_WEBHOOKS = `
goOnIfFull()
local names = redis.call('ZRANGEBYSCORE', P .. 'owed', '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do redis.call('ZADD', P .. 'owed', ARGV[2], name) end
return names
`;

export function lookScripts({ moveStalledJobsToWait }: BullScripts) {
  return {
    read: script(READ),
    list: script(LIST),
    fetched: script(FETCHED),
    look: script(LOOK, { moveStalledJobsToWait }),
    takeWebhooks: script(TAKE_WEBHOOKS),
  };
}
