package dev.fieldmesh.app

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.emptyFlow

/** The app with a key from the JDK's keytool: there is no Android Keystore on a desk. */
class TestApp : Fieldmesh() {
    /** What its camera sees. */
    var seen: Flow<Shot> = emptyFlow()
    override val pictures = Pictures { seen }
    override val worker = Dispatchers.Unconfined

    /** What its node tells. */
    val heard = MutableSharedFlow<Heard>(extraBufferCapacity = 64)

    override fun follow(node: AgentClient): Flow<Heard> = heard

    override fun identity(): Identity = key

    private companion object {
        val key: Identity by lazy { newIdentity("app") }
    }
}
