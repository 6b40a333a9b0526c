package main

import _ "time/tzdata" // an Android may have no time zones where Go looks for them
