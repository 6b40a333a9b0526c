// Package hwsim makes radios of the kernel's mac80211_hwsim and is the end of the
// air between them: the kernel's own 802.11 stack hands its frames over here, with
// the rates that its rate control chose, and is told what came in and what happened
// to its own (drivers/net/wireless/virtual/mac80211_hwsim.h). What happens on the
// air, other packages decide.
package hwsim
