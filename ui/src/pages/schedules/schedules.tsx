/** The page of schedules. */

import { Page } from '../../components/page.tsx';

export default function Schedules() {
  return <Page title="Schedules">{null}</Page>;
}
