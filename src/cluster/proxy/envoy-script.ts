/**
 * The script by which Envoy tells the tenant of a request and its bucket: the first twelve bits of the SHA-256 of the tenant's
 * id, as `routing.ts` has it. Envoy's Lua has no hashes, but the bits of LuaJIT, with which FIPS 180-4 is written down
 * here. What a request says of these two headers is always replaced.
 */

/** Words of the constants of FIPS 180-4: the roots of the first primes, taken here and not copied. */
function fractions(count: number, root: (prime: number) => number): string {
  const primes: number[] = [];
  for (let next = 2; primes.length < count; next += 1) {
    if (primes.every((prime) => next % prime !== 0)) primes.push(next);
  }
  return primes
    .map((prime) => `0x${fraction(root(prime)).toString(16).padStart(8, '0')}`)
    .join(',');
}

/** The first 32 bits behind the point. A double has 52 bits, of which the whole part of these roots takes 5 at most. */
const fraction = (value: number) => Math.floor((value - Math.floor(value)) * 2 ** 32);

export const BUCKET_SCRIPT = `local band, bnot, bxor = bit.band, bit.bnot, bit.bxor
local ror, rshift, tobit = bit.ror, bit.rshift, bit.tobit

local K = {${fractions(64, Math.cbrt)}}
local START = {${fractions(8, Math.sqrt)}}

-- The first word of the SHA-256 of a text.
local function sha256(text)
  local padding = (55 - #text) % 64
  text = text .. "\\128" .. string.rep("\\0", padding + 4)
    .. string.char(band(rshift(#text, 21), 255), band(rshift(#text, 13), 255),
      band(rshift(#text, 5), 255), band(#text * 8, 255))
  local h = {unpack(START)}
  for block = 1, #text, 64 do
    local w = {}
    for i = 1, 16 do
      local b1, b2, b3, b4 = string.byte(text, block + i * 4 - 4, block + i * 4 - 1)
      w[i] = tobit(b1 * 16777216 + b2 * 65536 + b3 * 256 + b4)
    end
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      local s0 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
      local s1 = bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
      w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
    end
    local a, b, c, d, e, f, g, last = unpack(h)
    for i = 1, 64 do
      local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
      local one = tobit(last + s1 + bxor(band(e, f), band(bnot(e), g)) + K[i] + w[i])
      local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
      local two = tobit(s0 + bxor(band(a, b), band(a, c), band(b, c)))
      last, g, f, e, d, c, b, a = g, f, e, tobit(d + one), c, b, a, tobit(one + two)
    end
    for i, value in ipairs({a, b, c, d, e, f, g, last}) do h[i] = tobit(h[i] + value) end
  end
  return h[1]
end

local function decoded(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

local function tenantOf(headers)
  local tenant = headers:get("x-tenant-id")
  if tenant ~= nil and tenant ~= "" then return tenant end
  local query = headers:get(":path"):match("%?(.*)$")
  local value = query and ("&" .. query):match("&tenant_id=([^&]*)")
  if value == nil or value == "" or value:match("%%[01]%x") or value:match("%%7[fF]") then return nil end
  return decoded(value)
end

function envoy_on_request(handle)
  local headers = handle:headers()
  headers:remove("x-route-tenant")
  headers:remove("x-route-bucket")
  local tenant = tenantOf(headers)
  if tenant == nil then return end
  headers:add("x-route-tenant", tenant)
  headers:add("x-route-bucket", bit.tohex(rshift(sha256(tenant), 20), 3))
end
`;
