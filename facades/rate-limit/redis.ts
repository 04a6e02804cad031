/** Counts calls in Redis or Valkey, for several processes. One script counts a call in both windows, or in none. */
import { Redis, type Result } from 'ioredis';
import type { RateLimitStore, Taken } from './window.ts';

const TIMEOUT_MS = 200;
const RECONNECT_MAX_MS = 2_000;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    freeholdTake(name: string, perMinute: number, perHour: number): Result<(string | number)[], Context>;
  }
}

/** The script uses the clock of Redis, so that all processes see the same windows. Lua truncates numbers, so it returns texts. */
const TAKE = `
local t = redis.call('TIME')
local s = tonumber(t[1]) + tonumber(t[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'm', 'mc', 'mb', 'h', 'hc', 'hb')
local function roll(index, current, before, seconds)
  local now = math.floor(s / seconds)
  index, current, before = tonumber(index), tonumber(current) or 0, tonumber(before) or 0
  if index ~= now then
    if index == now - 1 then before = current else before = 0 end
    current = 0
  end
  return now, current, before, s - now * seconds
end
local m, mc, mb, me = roll(kept[1], kept[2], kept[3], 60)
local h, hc, hb, he = roll(kept[4], kept[5], kept[6], 3600)
local allowed = 0
if mb * (1 - me / 60) + mc + 1 <= tonumber(ARGV[1]) and hb * (1 - he / 3600) + hc + 1 <= tonumber(ARGV[2]) then
  allowed = 1
  mc = mc + 1
  hc = hc + 1
  redis.call('HSET', KEYS[1], 'm', m, 'mc', mc, 'mb', mb, 'h', h, 'hc', hc, 'hb', hb)
  local seconds = 7200
  if string.find(KEYS[1], ':ip:', 1, true) then seconds = 120 end
  redis.call('EXPIRE', KEYS[1], seconds)
end
return { allowed, mc, mb, tostring(me), hc, hb, tostring(he) }`;

export class RedisRateLimits implements RateLimitStore {
  readonly #redis: Redis;

  /** Connects in the background. While there is no connection, `take` throws at once. */
  constructor(url: string) {
    this.#redis = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: TIMEOUT_MS,
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(times * 100, RECONNECT_MAX_MS),
    });
    // `take` throws as well, and its caller handles the error.
    this.#redis.on('error', () => {});
    this.#redis.defineCommand('freeholdTake', { numberOfKeys: 1, lua: TAKE });
  }

  async take(name: string, perMinute: number, perHour: number): Promise<Taken> {
    const values = (await this.#redis.freeholdTake(`freehold:rate:${name}`, perMinute, perHour)).map(Number);
    const [allowed, minute, beforeMinute, elapsedMinute, hour, beforeHour, elapsedHour] = values;
    return {
      allowed: allowed === 1,
      minute: { current: minute!, before: beforeMinute!, elapsed: elapsedMinute! },
      hour: { current: hour!, before: beforeHour!, elapsed: elapsedHour! },
    };
  }

  /** Waits for the connection. For callers without a request. */
  async ready(): Promise<void> {
    if (this.#redis.status !== 'ready') await new Promise<void>((done) => this.#redis.once('ready', () => done()));
  }

  close(): void {
    this.#redis.disconnect();
  }
}
