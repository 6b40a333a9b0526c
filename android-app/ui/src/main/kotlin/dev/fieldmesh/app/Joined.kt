package dev.fieldmesh.app

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.FleetNode

/** What came of a code. */
sealed interface Joined {
    /**
     * The app is let in by these nodes, of which a person chooses. It cannot call those that are [beyond] at the
     * fleet's addresses.
     */
    data class Fleet(val nodes: List<FleetNode>, val beyond: List<String>) : Joined {
        /** The fleet's only node, which the app is paired with. */
        val only: FleetNode? get() = nodes.singleOrNull()?.takeIf { beyond.isEmpty() }
    }

    /** This phone's node has a controller, and the app is paired with that node. */
    data class Own(val name: String) : Joined

    /** The code is for a node, and this phone's has a controller already. It stays good. */
    data object OwnIsPaired : Joined

    /** This phone's node was not paired, as its agent says. */
    data class OwnRefused(val said: String) : Joined

    data class Refused(val by: AgentException) : Joined
}
