/** Counts calls in Redis or Valkey, for several processes. One script counts a call under all its names, or under none. */
import { Redis, type Result } from 'ioredis';
import type { Quota, RateLimitStore, Taken } from './window.ts';

/** A request waits for Redis no longer than this. */
const TIMEOUT_MS = 200;
const RECONNECT_MAX_MS = 2_000;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    freeholdTake(names: number, ...keysAndQuotas: (string | number)[]): Result<(string | number)[], Context>;
  }
}

/** The script uses the clock of Redis, so that all processes see the same windows. Lua truncates numbers, so it returns texts. */
const TAKE = `
local t = redis.call('TIME')
local s = tonumber(t[1]) + tonumber(t[2]) / 1000000
local function roll(index, current, before, seconds)
  local now = math.floor(s / seconds)
  index, current, before = tonumber(index), tonumber(current) or 0, tonumber(before) or 0
  if index ~= now then
    if index == now - 1 then before = current else before = 0 end
    current = 0
  end
  return { now = now, current = current, before = before, elapsed = s - now * seconds }
end
local function fits(count, seconds, quota)
  return count.before * (1 - count.elapsed / seconds) + count.current + 1 <= tonumber(quota)
end
local all = true
local counts = {}
for i, name in ipairs(KEYS) do
  local kept = redis.call('HMGET', name, 'm', 'mc', 'mb', 'h', 'hc', 'hb')
  local m, h = roll(kept[1], kept[2], kept[3], 60), roll(kept[4], kept[5], kept[6], 3600)
  local allowed = fits(m, 60, ARGV[2 * i - 1]) and fits(h, 3600, ARGV[2 * i])
  all = all and allowed
  counts[i] = { m = m, h = h, allowed = allowed and 1 or 0 }
end
local told = {}
for i, name in ipairs(KEYS) do
  local m, h = counts[i].m, counts[i].h
  if all then
    m.current = m.current + 1
    h.current = h.current + 1
    redis.call('HSET', name, 'm', m.now, 'mc', m.current, 'mb', m.before, 'h', h.now, 'hc', h.current, 'hb', h.before)
    local seconds = 7200
    if string.find(name, ':ip:', 1, true) then seconds = 120 end
    redis.call('EXPIRE', name, seconds)
  end
  for _, value in ipairs({ counts[i].allowed, m.current, m.before, tostring(m.elapsed), h.current, h.before, tostring(h.elapsed) }) do
    table.insert(told, value)
  end
end
return told`;
/** The values that the script returns for each name. */
const VALUES = 7;

export class RedisRateLimits implements RateLimitStore {
  readonly #redis: Redis;

  /** Connects in the background. While there is no connection, `take` throws at once. @param timeoutMs of each `take` */
  constructor(url: string, timeoutMs = TIMEOUT_MS) {
    this.#redis = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: timeoutMs,
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(times * 100, RECONNECT_MAX_MS),
    });
    // `take` throws as well, and its caller handles the error.
    this.#redis.on('error', () => {});
    this.#redis.defineCommand('freeholdTake', { lua: TAKE });
  }

  /** @throws without an answer in time, or with one of another form */
  async take(quotas: readonly Quota[]): Promise<Taken[]> {
    const names = quotas.map(({ name }) => `freehold:rate:${name}`);
    const limits = quotas.flatMap(({ perMinute, perHour }) => [perMinute, perHour]);
    const values = (await this.#redis.freeholdTake(names.length, ...names, ...limits)).map(Number);
    if (values.length !== quotas.length * VALUES || !values.every(Number.isFinite))
      throw new Error('Redis does not answer as the script does.');
    return quotas.map((_, i) => {
      const [allowed, minute, beforeMinute, elapsedMinute, hour, beforeHour, elapsedHour] = values.slice(i * VALUES);
      return {
        allowed: allowed === 1,
        minute: { current: minute!, before: beforeMinute!, elapsed: elapsedMinute! },
        hour: { current: hour!, before: beforeHour!, elapsed: elapsedHour! },
      };
    });
  }

  /** Waits for the connection. For callers without a request. */
  async ready(): Promise<void> {
    if (this.#redis.status !== 'ready') await new Promise<void>((done) => this.#redis.once('ready', () => done()));
  }

  close(): void {
    this.#redis.disconnect();
  }
}
