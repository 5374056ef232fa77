/**
 * V8 from 12.9 on (Node 24) may give a member of JSON the name of another object's member: a name that ends in a
 * backslash is taken for one with an escape in the same place, whichever was parsed first, also for other tenants.
 * There is no workaround (docs/operate/deploy.md#the-version-of-node).
 */

/** Parses two objects that differ only in the name of a member. */
export function keepsMemberNames(): boolean {
  JSON.parse('{"probe":0,"\\\\":1}');
  return '\n' in JSON.parse('{"probe":0,"\\n":1}');
}
