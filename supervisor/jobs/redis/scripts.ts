/**
 * The Lua scripts of the store in Redis. Each is one step: it happens as a whole or not at all. The transitions themselves are
 * those of `job-rules.ts`: a front reads a record with its revision, computes the next one, and `change` writes that only if
 * the revision is still the same, with the places of the job in all indexes.
 *
 * Keys, all under `banana:jobs:`
 * - `job:<id>`, a hash: `rec` (the record), `rev` (its revision), `tok` (the mark of its attempt, or empty), `lt` (the mark of
 *   the last settled attempt), `st`, `att`, `can` (state, attempts and cancellation out of the record, for scripts), `q` (`due`:
 *   it is due and queued, so BullMQ has an entry or gets one), `place`, `line` (where it waits), `ord`, `bytes`, `end`, `key`,
 *   `con`, `call`, `body`, `res`, `prog`.
 * - `all`, `st:<state>`: ids by order of acceptance. `ended`: those that may be dropped, by order of their ends. `times`: queued
 *   ids by the time at which they are due, then expire. `toadd`: ids whose entry BullMQ does not have for certain, with the
 *   time since when.
 * - `owes:<front>`: webhooks that this front sends, `j<id>` of a job and `w<id>` of an app, by order of ends. The job, or the
 *   hash `hook:<id>` (`hook`, `body`), has the front in `own`. `owers`: the fronts that may have such. `front:<name>` is there
 *   while that front lives.
 * - `places`: number of due jobs by place, and `version`, which grows with each change of it.
 * - `key:<scope>`: the job of an idempotency key. `bytes`, `bytes:ended`, `order`, `ends`, `lease`.
 */
import { createHash } from 'node:crypto';

export const KEYS = 'banana:jobs:';

/** The prefix of BullMQ's own keys. */
export const QUEUE_PREFIX = 'banana:queue';

/** The channel on which fronts tell each other of changes: one for each database, since Redis has them for all together. */
export function newsChannel(database: number): string {
  return `${KEYS}news:${database}`;
}

/** The name of a front begins with the number of its database, so that a script finds the channel. */
export function frontName(database: number, id: string): string {
  return `${database}-${id}`;
}

export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** A front that has not looked for so long is taken as dead: others send the webhooks that it owes. */
const FRONT_LIFE_MS = 10_000;

const SHARED = `
local P = '${KEYS}'
local B = '${QUEUE_PREFIX}:'
local news = {}   -- lines of the message to the other fronts
local counts = {} -- place, count and version of each place that has changed, for the caller

local function job(id) return P .. 'job:' .. id end

local function count(place, by)
  local n = redis.call('HINCRBY', P .. 'places', place, by)
  if n <= 0 then
    redis.call('HDEL', P .. 'places', place)
    n = 0
  end
  local version = redis.call('INCR', P .. 'version')
  counts[#counts + 1] = place
  counts[#counts + 1] = tostring(n)
  counts[#counts + 1] = tostring(version)
  news[#news + 1] = 'p' .. n .. ' ' .. version .. ' ' .. place
end

local function weigh(all, ended)
  if all ~= 0 then redis.call('INCRBY', P .. 'bytes', all) end
  if ended ~= 0 then redis.call('INCRBY', P .. 'bytes:ended', ended) end
end

-- A Redis whose memory is full refuses scripts at their first command that may take more. One that frees some, or keeps the
-- jobs of a front, begins with a command that takes none.
local function goOnIfFull() redis.call('DEL', P .. 'none') end

-- All that is kept of a job goes together.
local function forget(id)
  local known = redis.call('HMGET', job(id), 'st', 'bytes', 'key', 'q', 'place')
  redis.call('ZREM', P .. 'ended', id)
  if not known[1] then return end
  redis.call('DEL', job(id))
  for _, name in ipairs({ 'all', 'times', 'toadd', 'st:' .. known[1] }) do redis.call('ZREM', P .. name, id) end
  local key = P .. 'key:' .. known[3]
  if known[3] ~= '' and redis.call('GET', key) == id then redis.call('DEL', key) end
  if known[4] == 'due' then count(known[5], -1) end
  local bytes = tonumber(known[2])
  local isEnded = known[1] ~= 'queued' and known[1] ~= 'running'
  weigh(-bytes, isEnded and -bytes or 0)
end

-- Drops ended jobs, the oldest first, until so many more bytes fit; none if they cannot.
local function makeRoom(more, max)
  local function bytes(name) return tonumber(redis.call('GET', P .. name) or '0') end
  if bytes('bytes') - bytes('bytes:ended') + more > max then return false end
  while bytes('bytes') + more > max do
    local oldest = redis.call('ZRANGE', P .. 'ended', 0, 0)[1]
    if not oldest then return false end
    forget(oldest)
  end
  return true
end

local function hookKey(name)
  local id = string.sub(name, 2)
  return string.sub(name, 1, 1) == 'j' and job(id) or P .. 'hook:' .. id
end

-- A webhook is owed, and this front sends it.
local function owe(name, front, at)
  redis.call('HSET', hookKey(name), 'own', front)
  redis.call('ZADD', P .. 'owes:' .. front, at, name)
  redis.call('SADD', P .. 'owers', front)
end

-- It is owed no more. Returns its place in the order of ends.
local function unowe(name)
  local owes = P .. 'owes:' .. (redis.call('HGET', hookKey(name), 'own') or '')
  local at = redis.call('ZSCORE', owes, name)
  redis.call('ZREM', owes, name)
  return at
end

local function nextEnd() return redis.call('INCR', P .. 'ends') end

local function tell(from)
  local channel = P .. 'news:' .. string.match(from, '^%d+')
  if #news > 0 then redis.call('PUBLISH', channel, from .. '\\n' .. table.concat(news, '\\n')) end
  return counts
end
`;

/** from, id, record, call, body, key's scope, content, bytes, max bytes, place, line, `due` or empty, next time or empty, now */
const ACCEPT = `
local from, id, rec, call, body, scope, content, bytes, max, place, line, q, at, now = unpack(ARGV)
if scope ~= '' then
  local owner = redis.call('GET', P .. 'key:' .. scope)
  local known = owner and redis.call('HMGET', job(owner), 'con', 'rec', 'prog')
  if known and known[2] then
    if known[1] ~= content then return { 'conflict' } end
    return { 'known', known[2], known[3] or '' }
  end
end
if not makeRoom(tonumber(bytes), tonumber(max)) then return { 'full' } end
local ord = redis.call('INCR', P .. 'order')
redis.call('HSET', job(id), 'rec', rec, 'rev', '0', 'tok', '', 'lt', '', 'st', 'queued', 'att', '0', 'can', '0', 'q', q,
  'place', place, 'line', line, 'ord', ord, 'bytes', bytes, 'key', scope, 'con', content, 'call', call, 'body', body)
redis.call('ZADD', P .. 'all', ord, id)
redis.call('ZADD', P .. 'st:queued', ord, id)
if at ~= '' then redis.call('ZADD', P .. 'times', at, id) end
if scope ~= '' then redis.call('SET', P .. 'key:' .. scope, id) end
if q == 'due' then
  count(place, 1)
  redis.call('ZADD', P .. 'toadd', now, id)
end
weigh(tonumber(bytes), 0)
return { 'accepted', rec, '', tell(from) }
`;

/**
 * from, id, revision, facts (JSON), record, record if the result has no room, result.
 * A begin has \`lock\`, the key of BullMQ's lock, and \`lockToken\`: that must be ours in the same step.
 */
const CHANGE = `
local from, id = ARGV[1], ARGV[2]
local f = cjson.decode(ARGV[4])
local rec = ARGV[5]
local was = redis.call('HMGET', job(id), 'rev', 'st', 'q', 'place', 'bytes', 'ord')
if not was[1] then return { 'gone' } end
if was[1] ~= ARGV[3] then return { 'moved' } end
if f.lock and redis.call('GET', f.lock) ~= f.lockToken then return { 'unlocked' } end
if not f.lock then goOnIfFull() end
if f.webhookEnded then
  redis.call('ZADD', P .. 'ended', unowe('j' .. id) or nextEnd(), id) -- from now on it may be dropped
  redis.call('HDEL', job(id), 'call', 'own')
  weigh(0, tonumber(was[5]))
elseif f.endMs then
  local bytes, size = tonumber(was[5]), f.leastBytes
  if f.hasResult then
    size = math.max(size, #ARGV[7])
    if size <= bytes or makeRoom(size - bytes, f.maxBytes) then
      redis.call('HSET', job(id), 'res', ARGV[7])
    else
      size, rec = f.leastBytes, ARGV[6]
    end
  end
  redis.call('HDEL', job(id), 'body')
  if f.owesWebhook then
    owe('j' .. id, from, nextEnd())
  else
    redis.call('HDEL', job(id), 'call')
    redis.call('ZADD', P .. 'ended', nextEnd(), id)
  end
  redis.call('HSET', job(id), 'end', f.endMs, 'bytes', size)
  weigh(size - bytes, f.owesWebhook and 0 or size)
end
redis.call('HSET', job(id), 'rec', rec, 'rev', tonumber(was[1]) + 1, 'st', f.st, 'att', f.att, 'can', f.can, 'tok', f.tok,
  'q', f.q)
if f.lt then redis.call('HSET', job(id), 'lt', f.lt) end
redis.call('HDEL', job(id), 'prog')
if was[2] ~= f.st then
  redis.call('ZREM', P .. 'st:' .. was[2], id)
  redis.call('ZADD', P .. 'st:' .. f.st, was[6], id)
end
if was[3] ~= f.q then
  count(was[4], f.q == 'due' and 1 or -1)
  if f.q == 'due' then redis.call('ZADD', P .. 'toadd', f.now, id) else redis.call('ZREM', P .. 'toadd', id) end
end
if f.at then redis.call('ZADD', P .. 'times', f.at, id) else redis.call('ZREM', P .. 'times', id) end
news[#news + 1] = 'r' .. rec
if f.isCancel then news[#news + 1] = 'c' .. id end
return { 'done', rec, '', tell(from) }
`;

/** from, id, model: BullMQ has the entry; the other fronts look. */
const ADDED = `
redis.call('ZREM', P .. 'toadd', ARGV[2])
news[1] = 'd' .. ARGV[3]
return tell(ARGV[1])
`;

/** from, id, mark, progress */
const PROGRESS = `
local known = redis.call('HMGET', job(ARGV[2]), 'tok', 'rec')
if known[1] ~= ARGV[3] then return {} end
redis.call('HSET', job(ARGV[2]), 'prog', ARGV[4])
news = { 'r' .. known[2], 'g' .. ARGV[4] }
tell(ARGV[1])
return { known[2] }
`;

/** from, id */
const WITHDRAW = `
local known = redis.call('HMGET', job(ARGV[2]), 'st', 'att')
if known[1] ~= 'queued' or known[2] ~= '0' then return {} end
forget(ARGV[2])
return tell(ARGV[1])
`;

/** state or empty, limit, from or empty */
const LIST = `
local name = ARGV[1] == '' and 'all' or 'st:' .. ARGV[1]
local top = ARGV[3] == '' and '+inf' or ARGV[3]
local ids = redis.call('ZREVRANGEBYSCORE', P .. name, top, '-inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[2]))
local found = {}
for i = 1, #ids, 2 do
  local known = redis.call('HMGET', job(ids[i]), 'rec', 'prog')
  if known[1] then
    found[#found + 1] = known[1]
    found[#found + 1] = known[2] or ''
    found[#found + 1] = ids[i + 1]
  end
end
return found
`;

/** from, id, webhook, body */
const OWE = `
redis.call('HSET', P .. 'hook:' .. ARGV[2], 'hook', ARGV[3], 'body', ARGV[4])
owe('w' .. ARGV[2], ARGV[1], nextEnd())
return 0
`;

/** id */
const FORGET_WEBHOOK = `
unowe('w' .. ARGV[1])
return redis.call('DEL', P .. 'hook:' .. ARGV[1])
`;

/** from, limit: names of owed webhooks whose front does not live; this one sends them now. */
const TAKE_WEBHOOKS = `
goOnIfFull()
local me, most, taken = ARGV[1], tonumber(ARGV[2]), {}
for _, front in ipairs(redis.call('SMEMBERS', P .. 'owers')) do
  local owes = P .. 'owes:' .. front
  if #taken < most and front ~= me and redis.call('EXISTS', P .. 'front:' .. front) == 0 then
    local names = redis.call('ZRANGE', owes, 0, most - #taken - 1, 'WITHSCORES')
    for i = 1, #names, 2 do
      redis.call('ZREM', owes, names[i])
      owe(names[i], me, names[i + 1])
      taken[#taken + 1] = names[i]
    end
    if redis.call('EXISTS', owes) == 0 then redis.call('SREM', P .. 'owers', front) end
  end
end
return taken
`;

/** from: names of the webhooks that this front sends. */
const MY_WEBHOOKS = `
return redis.call('ZRANGE', P .. 'owes:' .. ARGV[1], 0, -1)
`;

/** A write of nothing, which a Redis refuses that has no memory or no disk for more. */
const PROBE = `
return redis.call('SETRANGE', P .. 'none', 0, '')
`;

/** from, ms of a lease, known version of the places: what a front looks at each second. */
const LOOK = `
local time = redis.call('TIME')
local holder = redis.call('GET', P .. 'lease')
local leads = not holder or holder == ARGV[1]
goOnIfFull()
redis.call('SET', P .. 'front:' .. ARGV[1], '1', 'PX', ${FRONT_LIFE_MS})
if leads then redis.call('SET', P .. 'lease', ARGV[1], 'PX', ARGV[2]) end
local version = redis.call('GET', P .. 'version') or '0'
local places = version == ARGV[3] and {} or redis.call('HGETALL', P .. 'places')
return { time[1], time[2], leads and 1 or 0, version, redis.call('GET', P .. 'ends') or '0', places }
`;

/** from: gives the lease up. */
const LEAVE = `
if redis.call('GET', P .. 'lease') == ARGV[1] then redis.call('DEL', P .. 'lease') end
redis.call('DEL', P .. 'front:' .. ARGV[1])
return 0
`;

/**
 * from, now, ended before this are dropped, entries missing since before this are added. Returns ids whose time has come, the
 * next such time, ids without an entry, and whether there is more to do at once.
 */
const SWEEP = `
local most, isMore = 200, 0
local old = redis.call('ZRANGE', P .. 'ended', 0, most - 1)
for i, id in ipairs(old) do
  local ended = redis.call('HGET', job(id), 'end')
  if ended and tonumber(ended) > tonumber(ARGV[3]) then break end
  forget(id)
  if i == most then isMore = 1 end
end
local due = redis.call('ZRANGEBYSCORE', P .. 'times', '-inf', ARGV[2], 'LIMIT', 0, most)
if #due == most then isMore = 1 end
local later = redis.call('ZRANGEBYSCORE', P .. 'times', '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local missing = redis.call('ZRANGEBYSCORE', P .. 'toadd', '-inf', ARGV[4], 'LIMIT', 0, most)
tell(ARGV[1])
return { due, later[2] or '', missing, isMore }
`;

/**
 * From where on among running, and among queued jobs. Looks at each of the next ones: this costs commands by their number,
 * whether anything happens or not. Returns running ids and marks without BullMQ's lock, ids without an entry, and where it
 * goes on.
 */
const SEARCH = `
local function next(state, from, most)
  local found = redis.call('ZRANGEBYSCORE', P .. 'st:' .. state, from, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  return found, #found == 2 * most and '(' .. found[#found] or '-inf'
end
local stray, missing = {}, {}
local running, fromRunning = next('running', ARGV[1], 500)
for i = 1, #running, 2 do
  local id = running[i]
  local known = redis.call('HMGET', job(id), 'line', 'tok')
  if known[1] and redis.call('EXISTS', B .. known[1] .. ':' .. id .. ':lock') == 0 then
    stray[#stray + 1] = id
    stray[#stray + 1] = known[2]
  end
end
local queued, fromQueued = next('queued', ARGV[2], 50)
for i = 1, #queued, 2 do
  local id = queued[i]
  local known = redis.call('HMGET', job(id), 'line', 'q')
  local isMissing = known[2] == 'due' and redis.call('EXISTS', B .. known[1] .. ':' .. id) == 0
  if isMissing and not redis.call('ZSCORE', P .. 'toadd', id) then missing[#missing + 1] = id end
end
return { stray, missing, fromRunning, fromQueued }
`;

/** The keys of queues up to their last colon: which of them has the first job, from 1 on; 0 if all are empty. */
const HEADS = `
local best, bestUrgency, bestOrder = 0, 0, 0
for i, base in ipairs(ARGV) do
  local id, urgency = redis.call('LINDEX', base .. 'wait', -1), 0
  if not id then
    local head = redis.call('ZRANGE', base .. 'prioritized', 0, 0, 'WITHSCORES')
    id, urgency = head[1], math.floor((tonumber(head[2]) or 0) / 4294967296)
  end
  if id then
    local order = tonumber(redis.call('HGET', job(id), 'ord') or '0')
    if best == 0 or urgency < bestUrgency or (urgency == bestUrgency and order < bestOrder) then
      best, bestUrgency, bestOrder = i, urgency, order
    end
  end
end
return best
`;

/**
 * ms of a lock; id, mark, key of the lock and its token of each job that a front runs. A lock that has expired, because Redis
 * was away, is set again while the mark is still there: BullMQ would only renew it. Answers for each: \`gone\` if another mark
 * or an end is in the record, \`cancelled\`, or empty.
 */
const HELD = `
goOnIfFull()
local said = {}
for i = 2, #ARGV, 4 do
  local known = redis.call('HMGET', job(ARGV[i]), 'tok', 'can')
  if known[1] ~= ARGV[i + 1] then
    said[#said + 1] = 'gone'
  else
    redis.call('SET', ARGV[i + 2], ARGV[i + 3], 'PX', ARGV[1], 'NX')
    said[#said + 1] = known[2] == '1' and 'cancelled' or ''
  end
end
return said
`;

/** The numbers of the last end that is known and of the newest: the records of those that ended in between. */
const SINCE = `
local found = {}
local function find(name, prefix)
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', P .. name, '(' .. ARGV[1], ARGV[2])) do
    local rec = string.sub(one, 1, #prefix) == prefix and redis.call('HGET', job(string.sub(one, #prefix + 1)), 'rec')
    if rec then found[#found + 1] = rec end
  end
end
find('ended', '')
for _, front in ipairs(redis.call('SMEMBERS', P .. 'owers')) do find('owes:' .. front, 'j') end
return found
`;

function script(body: string): Script {
  const text = SHARED + body;
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

export const SCRIPTS = {
  accept: script(ACCEPT),
  change: script(CHANGE),
  added: script(ADDED),
  progress: script(PROGRESS),
  withdraw: script(WITHDRAW),
  list: script(LIST),
  look: script(LOOK),
  leave: script(LEAVE),
  sweep: script(SWEEP),
  search: script(SEARCH),
  heads: script(HEADS),
  held: script(HELD),
  since: script(SINCE),
  owe: script(OWE),
  forgetWebhook: script(FORGET_WEBHOOK),
  takeWebhooks: script(TAKE_WEBHOOKS),
  myWebhooks: script(MY_WEBHOOKS),
  probe: script(PROBE),
} as const;
