package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.WiFiLook
import dev.fieldmesh.core.agent.pushWiFi
import dev.fieldmesh.core.agent.renewed
import dev.fieldmesh.core.wire.WiFi
import dev.fieldmesh.core.wire.WiFiReading
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals

class WiFiPushTest {
    private fun look(ms: Long, dbm: Int, txMbps: Int? = 286, mhz: Int = 5180) =
        WiFiLook(ms * 1_000_000, "02:11:22:33:44:77", dbm, txMbps, null, mhz)

    private fun found(vararg looks: WiFiLook?) = runBlocking {
        flowOf(*looks).renewed().toList().map { it.look.bootNs / 1_000_000 to it.withinNs / 1_000_000 }
    }

    @Test
    fun `a value is told when Android has renewed it, and not again`() = assertEquals(
        listOf(1_500L to 500L, 4_000L to 500L, 4_500L to 500L),
        found(
            look(500, -60), // of when, nobody knows
            look(1_000, -60),
            look(1_500, -61),
            look(2_000, -61),
            look(3_500, -61),
            look(4_000, -62),
            look(4_500, -62, txMbps = 243), // read from the radio with the signal
        ),
    )

    @Test
    fun `a network that is new is not renewed`() {
        assertEquals(listOf(2_500L to 500L), found(look(500, -60), null, look(2_000, -70), look(2_500, -71)))
        assertEquals(emptyList(), found(look(500, -60), look(1_000, -60, mhz = 2437)), "it has roamed")
    }

    @Test
    fun `an app that has not looked for long does not know when it was renewed`() =
        assertEquals(listOf(3_500L to 3_000L), found(look(500, -60), look(3_500, -61), look(6_600, -62)))

    private val three = flowOf(look(500, -60), look(1_000, -61), look(1_500, -62), look(2_000, -63)).renewed()

    @Test
    fun `the node is told without the access point, and the log has it`() = runBlocking {
        val told = mutableListOf<WiFiReading>()
        pushWiFi(three, told::add) { 1_040_000_000 }
        assertEquals(WiFiReading(40.0, 500.0, -61.0, 286.0, null, 5180), told.first())
        assertEquals(
            WiFi("android", "02:11:22:33:44:77", 500.0, -61.0, 286.0, null, 5180),
            three.toList().first().toRecord(),
        )
    }

    @Test
    fun `a reading that the node did not take is given up`() = runBlocking {
        val told = mutableListOf<Double?>()
        pushWiFi(
            three,
            {
                told += it.signalDbm
                throw AgentException.Unreachable(IOException("refused"))
            },
        ) { 0 }
        assertEquals(told.distinct(), told)
        assertEquals(-63.0, told.last(), "and the newest is told")
    }
}
