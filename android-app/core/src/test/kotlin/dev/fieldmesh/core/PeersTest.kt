package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.app.Peer
import dev.fieldmesh.core.wire.Place
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals

class PeersTest {
    private var now = 0L
    private val instrument = Instrument({ now }, { _, _ -> })
    private val peers get() = instrument.state.value.track.peers

    private fun at(seconds: Double) {
        now = (seconds * 1e9).toLong()
        instrument.refresh()
    }

    @Test
    fun `where other nodes were is shown with an age that grows, until it says nothing`() {
        instrument.heard(Heard.Plan(schedule()))
        instrument.heard(Heard.View(view("armed")))
        assertEquals(emptyList(), peers, "nobody told about any")
        instrument.heard(
            Heard.View(
                view(
                    "armed",
                ).copy(places = listOf(Place("roadside", 0.001, 0.002, 2300.0), Place("relay", 0.0, 0.0, 599_000.0))),
            ),
        )
        assertEquals(listOf(Peer("roadside", 0.001, 0.002, 2), Peer("relay", 0.0, 0.0, 599)), peers)
        instrument.heard(Heard.Lost(AgentException.Unreachable(IOException("gone"))))
        at(10.0)
        assertEquals(
            listOf(Peer("roadside", 0.001, 0.002, 12)),
            peers,
            "an age does not stand still, and the old is left out",
        )
        at(700.0)
        assertEquals(emptyList(), peers)
    }

    @Test
    fun `with the run its nodes go`() {
        instrument.heard(Heard.Plan(schedule()))
        instrument.heard(Heard.View(view("armed").copy(places = listOf(Place("roadside", 0.0, 0.0, 0.0)))))
        instrument.heard(Heard.NoRun)
        assertEquals(emptyList(), peers)
    }
}
