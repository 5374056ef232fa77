/**
 * Addresses that a request from a workflow must never reach, and the ways to spell them in a URL.
 * Shared by the tests of the address guard and of the handler that uses it.
 */

export const FORBIDDEN_IPV4 = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.255',
  '127.0.0.1',
  '127.1.2.3',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.0.1',
  '169.254.169.254',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.168.255.255',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
] as const;

export const FORBIDDEN_IPV6 = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '100::1',
  '2001:db8::1',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fdff::1',
  'fe80::1',
  'febf::1',
  'fec0::1',
  'ff02::1',
  'ff0e::1',
] as const;

/** Every way to write an IPv4 address as the host of a URL that this engine knows of. */
export function spellings(address: string): string[] {
  const bytes = address.split('.').map(Number) as [number, number, number, number];
  const [a, b, c, d] = bytes;
  const value = ((a * 256 + b) * 256 + c) * 256 + d;
  const high = (a * 256 + b).toString(16);
  const low = (c * 256 + d).toString(16);
  const inverse = bytes.map((byte) => 255 - byte) as [number, number, number, number];
  return [
    address,
    `${address}.`,
    String(value),
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    bytes.map((byte) => `0x${byte.toString(16)}`).join('.'),
    bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    percentEncoded(address),
    fullWidth(address),
    `[::ffff:${address}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${high}:${low}]`,
    `[::${address}]`,
    `[::ffff:0:${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${address}]`,
    `[2002:${high}:${low}::1]`,
    `[2001:0:4136:e378:8000:63bf:${hexPair(inverse[0], inverse[1])}:${hexPair(inverse[2], inverse[3])}]`,
  ];
}

function hexPair(high: number, low: number): string {
  return (high * 256 + low).toString(16);
}

function percentEncoded(text: string): string {
  return [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');
}

/** Full-width digits and the ideographic full stop, which host names are folded from. */
function fullWidth(text: string): string {
  return [...text]
    .map((char) => (char === '.' ? '\u3002' : String.fromCodePoint(0xff10 + Number(char))))
    .join('');
}
