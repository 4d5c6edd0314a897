/** The scripts that change one job, or begin some. */
import type { BullScripts } from './load-packages.js';
import { NEWS, script } from './layout.js';

/**
 * id, queue, bytes, most bytes, key, its content, when it expires, now, retention, ms for which its body is kept, body, route, data,
 * options of BullMQ, its time there, delay, priority, server: stores a job, as BullMQ's \`add\` does. A job that has its key is found.
 */
const ACCEPT = `
local id, queue, bytes, key, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5], ARGV[8]
local known = key ~= '-' and redis.call('GET', P .. 'key:' .. key)
if known then
  local knownId, content = string.match(known, '^(.-)\\n(.*)$')
  local found = read(knownId)
  if #found == 0 or hasPassed(knownId, now, ARGV[9]) then drop(knownId)
  elseif content ~= ARGV[6] then return { 'conflict' }
  else return { 'known', found } end
elseif key ~= '-' and entry(id) then -- an id that its client has chosen
  if not hasPassed(id, now, ARGV[9]) then return { 'conflict' } end
  drop(id)
end
if not makeRoom(bytes, tonumber(ARGV[4])) then return { 'full' } end
note(id, 0, bytes, 0, key, queue)
redis.call('ZADD', P .. 'order', redis.call('INCR', P .. 'seq'), id)
redis.call('ZADD', P .. 'expires', ARGV[7], id)
if key ~= '-' then redis.call('SET', P .. 'key:' .. key, id .. '\\n' .. ARGV[6]) end
if ARGV[11] ~= '' then redis.call('SET', P .. 'body:' .. id, ARGV[11], 'PX', ARGV[10]) end
local q, at, wait, priority = base(queue), tonumber(ARGV[15]), tonumber(ARGV[16]), ARGV[17]
if redis.call('SADD', P .. 'queues', queue) == 1 then
  redis.call('HSETNX', q .. 'meta', 'opts.maxLenEvents', 10000)
  redis.call('XADD', '${NEWS}', 'MAXLEN', '~', 1000, '*', 'queue', queue)
end
redis.call('HSET', q .. id, 'name', ARGV[12], 'data', ARGV[13], 'opts', ARGV[14], 'timestamp', ARGV[15], 'delay', wait,
  'priority', priority)
if wait > 0 then delay(q, id, at + wait)
else
  enqueue(q, id, priority)
  tell(q, 'waiting', id, 'by', ARGV[18])
end
return { 'accepted' }
`;

/**
 * Fetches the first jobs of some queues, which have the lock of this token then: one, and those of its route that may begin with it.
 * From an argument on: token, worker, ms of the lock, now; name, route and most jobs of each queue. Also counts what waits in each.
 */
const FETCH = `
-- The most urgent of the first jobs of these queues; of these, the one that was accepted first.
local function first(open)
  if #open == 1 then return 1 end
  local best, bestRank, bestOrder
  for i, one in ipairs(open) do
    local id = redis.call('LINDEX', one.at .. 'wait', -1) or redis.call('ZRANGE', one.at .. 'prioritized', 0, 0)[1]
    local rank = id and tonumber(redis.call('HGET', one.at .. id, 'priority') or '0') or math.huge
    local order = id and tonumber(redis.call('ZSCORE', P .. 'order', id) or '0') or math.huge
    if not best or rank < bestRank or (rank == bestRank and order < bestOrder) then
      best, bestRank, bestOrder = i, rank, order
    end
  end
  return best
end
local KEYS_OF_ACTIVE = { 'wait', 'active', 'prioritized', 'events', 'stalled', 'limiter', 'delayed', 'paused', 'meta', 'pc',
  'marker' }
local function fetch(from)
  local opts = cmsgpack.pack({ token = ARGV[from], name = ARGV[from + 1], lockDuration = tonumber(ARGV[from + 2]) })
  local all, open = {}, {}
  for i = from + 4, #ARGV, 3 do
    all[#all + 1] = { name = ARGV[i], at = base(ARGV[i]), route = ARGV[i + 1], most = tonumber(ARGV[i + 2]) }
    open[#all] = all[#all]
  end
  local found, most = {}, 1
  while #found < most and #open > 0 do
    local i = first(open)
    local one = open[i]
    local job = moveToActive(keysAt(one.at, KEYS_OF_ACTIVE), { one.at, ARGV[from + 3], opts })
    local _, _, _, queue = entry(job[2])
    if job[1] == 0 then
      one.isEmpty = true
      table.remove(open, i)
    elseif queue ~= one.name then -- a tool of BullMQ has added it: no client has, and a copy would run a second time
      redis.call('LREM', one.at .. 'active', 1, job[2])
      redis.call('DEL', one.at .. job[2], one.at .. job[2] .. ':lock')
    else
      found[#found + 1] = { one.name, job[2], job[1] }
      most = one.most
      for j = #open, 1, -1 do
        if open[j].route ~= one.route then table.remove(open, j) end
      end
    end
  end
  local left = {}
  for i, one in ipairs(all) do left[i] = { one.name, one.isEmpty and 0 or redis.call('ZCARD', one.at .. 'prioritized') } end
  return { found, left }
end
`;

const BEGIN = 'return fetch(1)';

/**
 * id, token or empty, fetches, to, data, at, state, text, until when its webhook is this server's or empty, what its result counts for
 * or empty, most bytes, ms for which it is kept, result, server; then, for a fetch in the same step, its arguments: changes a job that waits, or,
 * with its token, one that runs here. It goes to the \`front\` of its priority, where it may expire at that time; is tried again
 * \`later\`; goes \`back\` to those that have ended, from where a tool has taken it; or \`end\`s. Answers what happened, whether
 * the result is kept, whether it was cancelled while it ran, what was fetched.
 */
const MOVE = `
local id, token, to, data, at, state = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local was, _, key, queue = entry(id)
if not queue then return { 'gone' } end
local q = base(queue)
local job, body, done, prev, isKept = q .. id, P .. 'body:' .. id, 'done', 'active', false
local known = redis.call('HMGET', job, 'ats', 'can', 'priority', 'atm')
local fetches, can, tries = known[1], known[2], (known[4] or 0) + (known[1] and 1 or 0)
if token ~= '' then
  if redis.call('GET', job .. ':lock') ~= token then return { 'gone' } end
  if can and (to == 'front' or to == 'later') then return { 'cancelled' } end
  local isActive = redis.call('LREM', q .. 'active', -1, id) == 1 -- a Redis that is full refuses no command after such a one
  redis.call('DEL', job .. ':lock', isActive and to == 'end' and body or job .. ':lock')
  redis.call('SREM', q .. 'stalled', id)
  if not isActive then return { 'gone' } end
else
  if (fetches or '') ~= ARGV[3] then return { 'moved' } end
  local isLoss = to == 'later' or state == 'lost' or state == 'failed'
  if can and isLoss and to ~= 'back' then return { 'moved' } end
  prev = 'waiting'
  if redis.call('ZREM', q .. 'prioritized', id) == 1 then done = 'was due'
  elseif redis.call('ZREM', q .. 'delayed', id) + redis.call('LREM', q .. 'wait', 1, id) == 0 then return { 'gone' } end
end
if to ~= 'end' then redis.call('HSET', job, 'data', data) end
if to == 'front' then
  redis.call('ZADD', q .. 'prioritized', math.max(1, known[3]) * 4294967296, id)
  tell(q, 'waiting', id, 'by', ARGV[14])
  if at ~= '' then redis.call('ZADD', P .. 'expires', at, id) end
elseif to == 'back' then
  redis.call('HSET', job, 'finishedOn', at)
  redis.call('ZADD', q .. (state == 'succeeded' and 'completed' or 'failed'), at, id)
elseif to == 'later' then
  redis.call('HSET', job, 'atm', tries)
  delay(q, id, tonumber(at))
else
  local set, field = 'failed', 'failedReason'
  if state == 'succeeded' then set, field = 'completed', 'returnvalue' end
  isKept = ARGV[10] ~= '' and makeRoom(ARGV[10] - was, tonumber(ARGV[11]))
  if isKept then redis.call('SET', P .. 'result:' .. id, ARGV[13], 'PX', ARGV[12]) end
  note(id, was, isKept and ARGV[10] or LEAST, isKept and 0 or 1, key, queue)
  redis.call('HSET', job, 'data', data, 'st', state, field, ARGV[8], 'finishedOn', at, 'atm', tries)
  redis.call('ZADD', q .. set, at, id)
  tell(q, set, id, field, ARGV[8], 'prev', prev)
  if token == '' then redis.call('DEL', body) end
  if ARGV[9] ~= '' then redis.call('ZADD', P .. 'owed', ARGV[9], 'j' .. id) end
end
return { done, isKept and 1 or 0, can or '', #ARGV > 14 and fetch(15) or false }
`;

/** id: a running job is noted as cancelled. Answers where it is: running, waiting or ended. */
const CANCEL = `
local id = ARGV[1]
local at = placeOf(id)
if not at or redis.call('HEXISTS', at .. id, 'st') == 1 then return 'ended' end
if waits(at, id) then return 'waiting' end
redis.call('HSET', at .. id, 'can', '1')
redis.call('XADD', '${NEWS}', 'MAXLEN', '~', 1000, '*', 'cancel', id)
return 'running'
`;

/** id, token, report: notes the progress of a job that runs here. */
const PROGRESS = `
local id = ARGV[1]
local q = placeOf(id)
if not q or redis.call('GET', q .. id .. ':lock') ~= ARGV[2] then return 0 end
redis.call('HSET', q .. id, 'progress', ARGV[3])
tell(q, 'progress', id, 'data', ARGV[3])
return 1
`;

/**
 * ms of a lock; id, token and worker of each job that a server runs: renews the locks. One that has expired, because Redis
 * was away, is set again while the job is active and was fetched by that worker: BullMQ would only renew it. Answers for
 * each: \`gone\`, \`cancelled\`, or empty.
 */
const HELD = `
goOnIfFull()
local said = {}
for i = 2, #ARGV, 3 do
  local id, token = ARGV[i], ARGV[i + 1]
  local at = placeOf(id)
  local lock = at and redis.call('GET', at .. id .. ':lock')
  local known = at and redis.call('HMGET', at .. id, 'pb', 'can')
  if at and (lock == token or not lock and known[1] == ARGV[i + 2] and redis.call('LPOS', at .. 'active', id)) then
    redis.call('SET', at .. id .. ':lock', token, 'PX', ARGV[1])
    redis.call('SREM', at .. 'stalled', id)
    said[#said + 1] = known[2] and 'cancelled' or ''
  else
    said[#said + 1] = 'gone'
  end
end
return said
`;

/** id: it was not to be expired, unless it waits for its first begin by now. */
const KEEP_ON = `
if hasNotBegun(ARGV[1]) then return 0 end
return redis.call('ZREM', P .. 'expires', ARGV[1])
`;

/** id: forgets a job that has not begun. */
const WITHDRAW = `
if hasNotBegun(ARGV[1]) then drop(ARGV[1]) end
return 0
`;

export function stepScripts({ moveToActive }: BullScripts) {
  return {
    accept: script(ACCEPT),
    begin: script(FETCH + BEGIN, { moveToActive }),
    move: script(FETCH + MOVE, { moveToActive }),
    cancel: script(CANCEL),
    progress: script(PROGRESS),
    held: script(HELD),
    keepOn: script(KEEP_ON),
    withdraw: script(WITHDRAW),
  };
}
