/** Lists of group names as the text of a column. Names have no spaces (`GroupName` in `schema/common.ts`). */

const NONE: readonly string[] = [];

export const groupsText = (groups: readonly string[]) => groups.join(' ');

export function groupsIn(text: string): readonly string[] {
  return text === '' ? NONE : text.split(' ');
}
