/** The page of instances. */

import { Page } from '../../components/page.tsx';

export default function Instances() {
  return <Page title="Instances">{null}</Page>;
}
