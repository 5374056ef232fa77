/**
 * V8 from 12.9 on (Node 24) may give a JSON member the name of another object's member: a name that ends in a
 * backslash is confused with one that has an escape in the same position, whichever was parsed first, also across
 * tenants. There is no workaround (docs/operate/deploy.md#the-version-of-node).
 */

/** Parses two objects that differ only in the name of a member. */
export function keepsMemberNames(): boolean {
  JSON.parse('{"probe":0,"\\\\":1}');
  return '\n' in JSON.parse('{"probe":0,"\\n":1}');
}
